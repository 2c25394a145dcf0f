// Package audience is the language in which calls say whom they are about, and its
// evaluation over a generation: active - vip - country/my.
//
// # Vocabulary
//
// An expression is names, operators and parentheses; a name stands for a segment, for
// a set, for another expression of the configuration, or is all or default. An audience
// is the users of an expression in one generation. A block is 65,536 neighbouring ids. A
// sample is a deterministic share of all users, a part one of several slices of an audience
// that share nobody, a page the users of a slice up to a number of them, and a cursor
// the text that leads to the page that follows.
//
// # The language
//
//	expression = term { ( "|" | "-" ) term }
//	term       = factor { "&" factor }
//	factor     = name | "(" expression ")"
//	name       = letter or digit { letter | digit | "." | "_" | "-" | "/" | "+" }
//
// & binds first, | and - go from left to right. Names may hold a -, so that it is the
// operator only where no name is going on: a -b, a - b and (a)-b are differences, a-b is a
// name. all is everybody in any segment or set, default all of them in no segment. A
// segment's users are those by precedence: nobody is in two segments.
//
// # Evaluation
//
// An audience is worked out block by block, in words of 64 users, on all cores, from what a
// snapshot has: the codes of its segments and the containers of its sets. What does not
// count is not touched: nothing is taken away from nobody, and nothing is added to
// everybody. Nothing is kept but the number of users in each block, 4 bytes for
// it, in an Engine for the expressions asked for last, so that the parts of an audience
// are found without counting again.
//
// # Slices
//
// Part i of n of an audience of u users are those with the ranks i·u/n to (i+1)·u/n,
// in the order of their ids, before the sample is taken: parts share nobody, are the
// whole together, and are the same whatever the sample. A page goes on after the last
// id of the page before. A cursor names the generation and holds a hash of the expression,
// the sample and the part: with another query, or after the names of the configuration
// have changed what the expression means, it is refused.
//
// # Files
//
// scan and parse read expressions, named expands those of the configuration; bind finds the
// names in a generation, nearest the names that were meant; plan works out a block, engine
// counts, slice and cursor cut, breakdown counts by segment and set.
//
// # Not here
//
// Which generations are kept, HTTP, and what may be sent to the users.
package audience
