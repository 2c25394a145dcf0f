// Package logcache keeps logs of users in memory, in a form that the garbage
// collector does not look into.
//
// VictoriaMetrics/fastcache, which does so too, was measured in turns with it
// (fastcache v1.13.0, BenchmarkCache; processor time, the least of three rounds,
// random users, logs of 3 to 5 entries; "sends" also writes each log that it
// finds; the memory is what the process has more, for each log that is kept):
//
//	                           this package            fastcache
//	500,000 users, 192 MiB
//	  reads                    252 ns,  70 B, 100 %    515 ns, 137 B, 100 %
//	  sends                    468 ns, 146 B, 100 %    558 ns, 450 B, 100 %
//	500,000 users, 32 MiB
//	  reads                    210 ns,  78 B,  85 %    463 ns, 114 B, 100 %
//	  sends                    352 ns, 104 B,  61 %    625 ns, 145 B,  72 %
//	5 million users, 400 MiB
//	  reads                             64 B, 100 %            124 B, 100 %
//	  sends                             93 B,  82 %            163 B,  80 %
//
// fastcache finds more where it was given as many bytes because it takes half as
// many again: its index, a map of 16 bytes an entry, does not count. For the same
// memory this package finds more. It writes a log that has grown by an entry where
// it is, and is locked by the stripe that its caller holds anyway. The garbage
// collector takes 1 to 4 ms for a heap with either.
package logcache
