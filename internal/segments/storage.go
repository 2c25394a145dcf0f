package segments

// StorageError is a fault of a storage or of the way to it, such as a refused connection, a refused key or a full
// disk. It says nothing about what is stored: what has one may succeed another time.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return e.Err.Error() }
func (e *StorageError) Unwrap() error { return e.Err }
