// Package rows is what the formats of user ids have in common: what a row's user
// id is and what is not, which column holds it, how a bad row is told, and the
// Block that a parser fills with the rows of one piece of a file.
//
// It knows no files: package content opens them, the packages of the formats parse
// them, package ingest brings both together.
package rows
