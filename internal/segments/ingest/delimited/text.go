package delimited

import (
	"bytes"

	"capper/internal/segments/ingest/rows"
)

// parseText parses one id per line.
func parseText(into *rows.Block, block []byte, line int64) {
	ids := into.IDs
	for i := 0; i < len(block); line++ {
		start, v := i, uint64(0)
		for i < len(block) {
			c := block[i] - '0'
			if c > 9 {
				break
			}
			v = v*10 + uint64(c)
			i++
		}
		if digits := i - start; digits > 0 && digits <= 10 && v <= rows.MaxID && (i == len(block) || block[i] == '\n') {
			ids = append(ids, uint32(v))
			i++
			continue
		}
		field := block[start:]
		if end := bytes.IndexByte(field, '\n'); end >= 0 {
			field = field[:end]
		}
		i = start + len(field) + 1
		if id, ok := rows.ParseID(field); ok {
			ids = append(ids, id)
		} else {
			into.Reject(line, bytes.TrimRight(field, "\r"), rows.WhyNotID(field))
		}
	}
	into.IDs = ids
}
