package campaigns

import "net/url"

// escaped is a message in the path of the API.
func escaped(id, namespace string) string {
	path := url.PathEscape(id)
	if namespace != "" {
		path += "?namespace=" + url.QueryEscape(namespace)
	}
	return path
}

// parameters are those that name a campaign to the API.
func parameters(id, namespace, channel string) string {
	query := url.Values{"message_id": {id}}
	for name, value := range map[string]string{"namespace": namespace, "channel": channel} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query.Encode()
}
