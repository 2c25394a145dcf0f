// Package client calls the capper API.
//
// # The rule
//
// Send only to the users of Allowed, and retry the users of Unavailable with
// the same message id. Filter asks again by itself a few times; what is still
// unavailable then is in the result. An error means that the call had no
// answer, so nobody may be sent to.
//
// # Retries
//
// Every call of the API may be repeated: a send is recognised by its message
// id and channel (and the namespace of the key), releasing and erasing twice is once. So the client repeats what failed on
// the way (connection errors, 408, 500, 502, 503, 504), and waits where it is told to
// (429), until the context ends or Config.Attempts are used up. Refusals
// (*Error with another status) are not repeated: they would be refused again.
//
// # Large audiences
//
// FilterAll and ReleaseAll split an audience of any size into batches that are
// called in parallel. Interrupted and started again with the same message id
// they end with the same result: whom an earlier call or run had granted is in Replayed.
package client
