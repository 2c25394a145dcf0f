// Package storage is the commands over whole stores: backup, restore and migrate.
package storage
