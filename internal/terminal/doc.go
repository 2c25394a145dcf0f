// Package terminal implements the common behaviour of this project's command-line programs:
//
//   - Data goes to standard output. Messages go to standard error, and each line begins with the program's name:
//     `capper: error: …`, then `capper: hint: …` if there is advice.
//   - Control characters in message ids, rows of files, file names and answers of servers are escaped. Escaped text
//     cannot move the cursor, change the title or reverse the direction of text.
//   - Files are written atomically.
//   - The first signal ends a command, whatever the command waits for. A second signal ends the program at once.
package terminal
