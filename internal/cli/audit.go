package cli

// AuditCommands holds the commands `capper audit …`.
type AuditCommands struct {
	User    userCommand    `cmd:"" help:"List every recorded decision about a user, with the reason for the decision."`
	Message messageCommand `cmd:"" help:"List the recorded calls for a message, and count the decisions about its users."`
	Export  exportCommand  `cmd:"" help:"Export the audit (the log of all decisions), with one row for each user and decision."`
	Verify  verifyCommand  `cmd:"" help:"Check all audit files for damage, and check whether recorded sends exceeded the limits that applied to them."`
	Compact compactCommand `cmd:"" help:"Remove erased users and expired records from the audit files."`
}
