// Package terminal implements the common behaviour of the command-line programs of this project:
//
//   - Programs write data to standard output, and messages to standard error. Each line on standard error begins with
//     the name of the program: `capper: error: …`, and then perhaps advice, `capper: hint: …`.
//   - Programs escape control characters in message ids, rows of files, file names and responses of servers. Escaped
//     text cannot move the cursor, change the title of the terminal, or reverse the direction of text.
//   - Programs write files atomically.
//   - The first signal ends a command, even if the command waits for input or a server. A second signal ends the
//     program immediately.
package terminal
