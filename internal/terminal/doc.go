// Package terminal is the manners of this project's command lines, so that who
// knows one knows the other:
//
//   - Data goes to standard output, talk to standard error, each line of it
//     behind the program's name: `capper: error: …`, then `capper: hint: …` where
//     something can be done.
//   - What message ids, rows of files, names of files and answers of servers hold
//     is shown with its control characters escaped: a terminal obeys nothing of
//     it, no cursor moves, no title changes, no text runs from right to left.
//   - A file is written whole or not at all.
//   - The first signal ends a command, whatever it waits for; a second one ends
//     the program at once.
package terminal
