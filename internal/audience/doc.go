// Package audience parses expressions that select users, such as "active - vip - country/my", and evaluates them over a
// generation (published version) of segments and sets.
//
// # Vocabulary
//
// An expression consists of names, operators and parentheses. A name in an expression is a segment, a set, or a named
// expression of the configuration. The names "all" and "default" are built into the language of audience expressions.
// An audience is the set of users that an expression selects in one generation (published version). In bitmaps, a
// number identifies each user. If ids are dense (32-bit numbers), the number of a user is the id. If ids are not dense,
// the number of a user is the index of the user's id in the dictionary of the generation. A block is a range of 65,536
// neighbouring numbers. A sample is a percentage of all users. A hash of the ids chooses the users, so the sample is
// the same in every generation (published version). A part is one of several disjoint, equally large subsets of an
// audience. A page is a limited number of users of an audience, in ascending order. A cursor is the text with which a
// caller requests the next page.
//
// # The language
//
//	expression = term { ( "|" | "-" ) term }
//	term       = factor { "&" factor }
//	factor     = name | "(" expression ")"
//	name       = letter or digit { letter | digit | "." | "_" | "-" | "/" | "+" }
//
// In an audience expression, the operator "&" applies first; "|" and "-" then apply from left to right. A name in an
// expression may contain "-", so a "-" directly after a name belongs to the name. The texts "a -b", "a - b" and "(a)-b"
// mean "a without b", but "a-b" is one name. The name "all" selects every user in any segment or set. The name
// "default" selects the users in a set who are in no segment. If the bitmaps of several segments contain a user, the
// user belongs only to the first of these segments.
//
// # Evaluation
//
// An Engine evaluates an audience in blocks of 65,536 neighbouring numbers, on all CPU cores. To evaluate an
// expression, an Engine reads the segment codes and the set bitmaps of a segments.Snapshot. If an operand of the
// expression cannot change the result for a block, the Engine does not read the operand. For recently used expressions,
// an Engine caches the number of users in each block, in 4 bytes per block. With the cached counts of an expression, an
// Engine finds a part of the audience without counting users again.
//
// # Slices
//
// Suppose an audience of u users is divided into n parts. In the order of the users' numbers, part i has the users from
// position i·u/n up to, but not including, (i+1)·u/n. The parts have no user in common, and together contain the whole
// audience. The Engine divides an audience into parts before the sample removes users, so the borders of the parts are
// the same with and without a sample. A page of an audience begins with the first user whose number is higher than the
// last number of the previous page. A cursor contains the name of the generation, and one hash over the expression,
// sample and part of the query. The method Page rejects a cursor if the cursor belongs to another query, or if the
// configuration has changed the meaning of a name in the expression.
//
// # Files
//
// The files scan.go and parse.go parse expressions; named.go expands the named expressions of the configuration;
// bind.go finds the names in a generation. The file nearest.go finds suggestions for unknown names; plan.go evaluates
// an expression for 65,536 users at a time; engine.go and countcache.go count users. The files slice.go and cursor.go
// select a part or a page of an audience; breakdown.go counts the audience's users by segment and set.
//
// # Not here
//
// Package audience does not load generations, does not serve HTTP, and does not decide whether a user may receive a
// message.
package audience
