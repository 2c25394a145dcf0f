package config

import (
	"time"

	"capper/internal/objects"
	"capper/internal/yamltree"
)

// The method audit reads the key "audit" of a configuration file: the settings of the audit (record of all decisions).
func (r *reader) audit(v yamltree.Value) {
	a := &r.Audit
	given := v.Object(map[string]yamltree.Field{
		"to":          r.location(&a.To),
		"roll":        duration(&a.Roll, time.Second, 24*time.Hour),
		"spool":       r.path(&a.Spool),
		"max_waiting": yamltree.Size(&a.MaxWaiting, 1<<20, 1<<40),
	})
	if !given["to"] {
		v.FaultOf("to", "is required: name the directory or s3://bucket/prefix for recorded decisions")
	}
	if given["spool"] && a.To != "" && !objects.IsURL(a.To) {
		v.FaultOf("spool", "requires an audit at s3://: an audit in a directory is written directly")
	}
}
