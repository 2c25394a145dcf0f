// Package past answers from the audit: what was decided of a user, and what became of the
// users of a message. It reads records as package archive gives them, and holds no more of
// them than the answer does.
package past
