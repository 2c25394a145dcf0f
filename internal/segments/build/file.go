package build

import (
	"capper/internal/segments/ingest"
)

func Load(path string, base ingest.Input, into *Plan) (*Plan, error) { return nil, nil }
