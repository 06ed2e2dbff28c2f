// Renders a Helm chart's templates with Go's own text/template, where there is no helm: the functions
// of sprig that the chart uses are written out below. Reads {"values", "chart", "release"} as JSON.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func main() {
	var given map[string]interface{}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	root := template.New("chart").Option("missingkey=error")
	root.Funcs(template.FuncMap{
		"include": func(name string, data interface{}) (string, error) {
			var out strings.Builder
			err := root.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"nindent": func(n int, text string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(text, "\n", pad)
		},
		"quote":   func(value interface{}) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"default": func(other, value string) string {
			if value == "" {
				return other
			}
			return value
		},
		"add":       func(a float64, b int) int { return int(a) + b },
		"contains":  func(part, text string) bool { return strings.Contains(text, part) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"toYaml": func(value interface{}) string {
			text, err := json.Marshal(value) // JSON is YAML
			if err != nil {
				panic(err)
			}
			return string(text)
		},
	})
	for _, pattern := range []string{"*.tpl", "*.yaml"} {
		template.Must(root.ParseGlob(filepath.Join(os.Args[1], "templates", pattern)))
	}
	files, _ := filepath.Glob(filepath.Join(os.Args[1], "templates", "*.yaml"))
	for _, file := range files {
		fmt.Println("---")
		if err := root.ExecuteTemplate(os.Stdout, filepath.Base(file), given); err != nil {
			panic(err)
		}
	}
}
