package api

// Milliseconds is how all times of answers are written: RFC 3339 with
// milliseconds, in UTC.
const Milliseconds = "2006-01-02T15:04:05.000Z07:00"
