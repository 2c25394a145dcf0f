package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// A schema is a JSON schema, or a part of a JSON schema.
type schema = map[string]any

// WriteKubernetes writes a schema file for each kind in the API description of Kubernetes (swagger.json). The schema
// files have the names and the form that kubeconform reads, for example DIR/deployment-apps-v1.json. The schemas reject
// fields that the API description does not contain.
func WriteKubernetes(swagger, dir string) error {
	var described struct{ Definitions map[string]schema }
	data, err := os.ReadFile(swagger)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &described); err != nil {
		return fmt.Errorf("read %s: %w", swagger, err)
	}
	for name, definition := range described.Definitions {
		mend(name, definition)
	}
	for name, definition := range described.Definitions {
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 || definition["properties"] == nil {
			continue // options of API calls; these kinds belong to every API group
		}
		kind := kinds[0].(schema)
		used := map[string]schema{}
		gather(described.Definitions, name, used)
		whole := schema{"$ref": "#/definitions/" + name, "definitions": used}
		if err := write(dir, kind["kind"].(string), kind["group"].(string), kind["version"].(string),
			whole); err != nil {
			return err
		}
	}
	return nil
}

// The function "mend" changes a definition in Kubernetes' API description so that the definition rejects unknown
// fields. The function "mend" also corrects types that the API description states only in prose, such as "a number or a
// text".
func mend(name string, definition schema) {
	switch {
	case strings.HasSuffix(name, ".util.intstr.IntOrString"), strings.HasSuffix(name, ".api.resource.Quantity"):
		delete(definition, "type")
		delete(definition, "format")
		definition["oneOf"] = []any{schema{"type": "string"}, schema{"type": "number"}}
	default:
		restrict(definition)
	}
}

// The function "gather" adds the schema definition with the given name, and all definitions to which this definition
// refers, to the argument "used".
func gather(all map[string]schema, name string, used map[string]schema) {
	if used[name] != nil {
		return
	}
	used[name] = all[name]
	for _, next := range references(all[name]) {
		gather(all, next, used)
	}
}

// The function "references" returns the names of the schema definitions to which a schema refers.
func references(of any) (names []string) {
	switch value := of.(type) {
	case schema:
		for key, inner := range value {
			if text, ok := inner.(string); ok && key == "$ref" {
				names = append(names, strings.TrimPrefix(text, "#/definitions/"))
			}
			names = append(names, references(inner)...)
		}
	case []any:
		for _, inner := range value {
			names = append(names, references(inner)...)
		}
	}
	return names
}

// The function "restrict" makes every object in a schema reject fields that the schema does not describe.
func restrict(s any) {
	object, ok := s.(schema)
	if !ok {
		return
	}
	properties, described := object["properties"].(schema)
	if described && object["additionalProperties"] == nil && object["x-kubernetes-preserve-unknown-fields"] == nil {
		object["additionalProperties"] = false
	}
	for _, inner := range properties {
		restrict(inner)
	}
	restrict(object["items"])
	restrict(object["additionalProperties"])
}

// WriteCustom writes the JSON schemas of a Kubernetes custom resource definition to the directory dir.
func WriteCustom(definition, dir string) error {
	var read struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPI schema `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	data, err := os.ReadFile(definition)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("read %s: %w", definition, err)
	}
	for _, version := range read.Spec.Versions {
		restrict(version.Schema.OpenAPI)
		if err := write(dir, read.Spec.Names.Kind, read.Spec.Group, version.Name, version.Schema.OpenAPI); err != nil {
			return err
		}
	}
	return nil
}

// The function "write" writes a schema to a file, under the name that kubeconform expects.
func write(dir, kind, group, version string, s schema) error {
	parts := []string{strings.ToLower(kind), strings.Split(group, ".")[0], version}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.Join(parts, "-")+".json"), data, 0o600)
}
