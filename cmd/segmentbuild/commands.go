package main

type listCommand struct{}
type inspectCommand struct{}
type diffCommand struct{}
type membersCommand struct{}
type exportCommand struct{}
type verifyCommand struct{}
type rollbackCommand struct{}
type gcCommand struct{}
type generateCommand struct{}
