package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// The method Backup writes an archive of the service's embedded store (its local database of sends) to the writer. The
// method Backup needs an API key with the scope admin. The method Backup does not retry, and the bytes written before
// an error are useless. The program that reads the archive can detect whether the archive is complete; see the command
// `capper backup`.
func (c *Client) Backup(ctx context.Context, to io.Writer) error {
	response, err := c.send(ctx, http.MethodPost, "/v1/backup", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		if err != nil {
			return fmt.Errorf("read the response to POST /v1/backup: %w", err)
		}
		return errorOf(response, answer)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, response.Body, make([]byte, 256<<10)); err != nil {
		return fmt.Errorf("receive the backup: %w", err)
	}
	return nil
}
