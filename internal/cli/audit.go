package cli

// AuditCommands are the commands `capper audit …`.
type AuditCommands struct {
	User    userCommand    `cmd:"" help:"List every recorded decision about a user, with its reason."`
	Message messageCommand `cmd:"" help:"List the calls of a message and the decisions about its users."`
	Export  exportCommand  `cmd:"" help:"Export the audit with one row for each user and decision."`
	Verify  verifyCommand  `cmd:"" help:"Check all audit files for damage, and check the recorded sends against the limits that were in force."`
	Compact compactCommand `cmd:"" help:"Remove erased users and expired records from the audit files."`
}
