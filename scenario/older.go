package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// olderKeys returns the names that keys of load had before version 2 of the plan's format, with those of today.
func olderKeys() map[string]string {
	return map[string]string{"hold": "duration", "settle": "warmup", "cool": "cooldown", "drain": "graceful_stop"}
}

// currentKey returns today's name of the dotted path of a key.
func currentKey(path string) string {
	if name, ok := olderKeys()[strings.TrimPrefix(path, "load.")]; ok && strings.HasPrefix(path, "load.") {
		return "load." + name
	}
	return path
}

// renameOlder gives the keys below n, whose own dotted path is path, their names of today.
func (t *tree) renameOlder(n *node, path string) {
	for _, item := range n.items {
		t.renameOlder(item, path)
	}
	for i := range n.entries {
		e := &n.entries[i]
		old := strings.TrimPrefix(path+"."+e.key, ".")
		within := path
		if path == "matrix" {
			old, within = e.key, ""
		}
		if name := currentKey(old); name != old {
			key := strings.TrimPrefix(name, within+".")
			if n.get(key) != nil {
				t.say(e.at, "%s is the older name of %s, which is given as well: leave it out", old, name)
				continue
			}
			e.key, old = key, name
		}
		t.renameOlder(e.value, old)
	}
}

// UpgradePlan returns the JSON of a plan with the names of today if it is of an older version, else data itself.
func UpgradePlan(data []byte) ([]byte, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.Version != 1 {
		return data, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // seeds have 64 bits
	var plan map[string]any
	if err := d.Decode(&plan); err != nil {
		return nil, err
	}
	if err := upgradePlan(plan); err != nil {
		return nil, err
	}
	return json.Marshal(plan)
}

// upgradePlan renames the keys of a plan of version 1, and of the whole plan that it is a part of.
func upgradePlan(plan map[string]any) error {
	plan["version"] = PlanVersion
	objects := []any{plan, plan["find"]}
	if steps, ok := plan["steps"].([]any); ok {
		objects = slices.Concat(objects, steps)
	}
	for _, o := range objects {
		m, _ := o.(map[string]any)
		for old, name := range olderKeys() {
			for _, prefix := range []string{"", "longest_"} {
				v, ok := m[prefix+old]
				if !ok {
					continue
				}
				if _, both := m[prefix+name]; both {
					return fmt.Errorf("%s%s is the older name of %[1]s%[3]s, which is given as well", prefix, old, name)
				}
				delete(m, prefix+old)
				m[prefix+name] = v
			}
		}
	}
	if part, ok := plan["part"].(map[string]any); ok {
		if whole, ok := part["whole"].(map[string]any); ok {
			return upgradePlan(whole)
		}
	}
	return nil
}
