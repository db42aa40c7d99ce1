package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

const root = "../../.."

// dockerfile is the instructions of a Dockerfile, in order.
func dockerfile(t *testing.T, name string) (lines []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// words are the strings of a JSON array such as CMD ["serve"].
var words = regexp.MustCompile(`"([^"]*)"`)

func list(line string) (out []string) {
	for _, m := range words.FindAllStringSubmatch(line, -1) {
		out = append(out, m[1])
	}
	return out
}

// There is no container engine where the tests run, so what the Dockerfiles say
// is run outside of one.
func TestDockerfilesBuildStaticProgramsThatKnowTheirCommands(t *testing.T) {
	instructions := []string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD", "ENV", "VOLUME"}
	for _, name := range []string{"Dockerfile.broker", "Dockerfile.connector"} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			var program, user string
			var commands [][]string
			for _, line := range dockerfile(t, name) {
				op, rest, _ := strings.Cut(line, " ")
				switch op {
				case "RUN":
					if strings.Contains(rest, "go build") {
						cmd := exec.Command("sh", "-c", strings.ReplaceAll(rest, "/out/", out+"/"))
						cmd.Dir = root
						if b, err := cmd.CombinedOutput(); err != nil {
							t.Fatalf("%s: %v\n%s", line, err, b)
						}
					}
				case "ENTRYPOINT":
					program = filepath.Base(list(line)[0])
				case "CMD":
					commands = append(commands, list(line))
				case "HEALTHCHECK":
					commands = append(commands, list(line)[1:])
				case "USER":
					user = rest
				default:
					if !slices.Contains(instructions, op) {
						t.Errorf("unknown instruction %q", line)
					}
				}
			}
			if user != "nonroot:nonroot" {
				t.Errorf("runs as %q", user)
			}
			bin := filepath.Join(out, program)
			if b, err := exec.Command("file", bin).Output(); err == nil && !strings.Contains(string(b), "statically linked") {
				t.Errorf("not static: %s", b)
			}
			for _, args := range commands {
				if b, err := exec.Command(bin, append(args, "--help")...).CombinedOutput(); err != nil {
					t.Errorf("%s %v: %v\n%s", program, args, err, b)
				}
			}
		})
	}
}

func TestComposeNamesFilesAndSettingsThatExist(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Build struct {
				Context, Dockerfile string
			}
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal(b, &compose); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, file := range []string{"broker/config.go", "connector/config.go"} {
		src, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`env:"([A-Z_]+)"`).FindAllStringSubmatch(string(src), -1) {
			known[m[1]] = true
		}
	}
	for name, s := range compose.Services {
		if s.Build.Dockerfile != "" {
			if _, err := os.Stat(filepath.Join(root, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for env := range s.Environment {
			if !known[env] && !strings.HasPrefix(env, "POSTGRES_") {
				t.Errorf("%s: nobody reads %s", name, env)
			}
		}
	}
	for _, want := range []string{"postgres", "broker", "connector"} {
		if _, ok := compose.Services[want]; !ok {
			t.Errorf("no service %s", want)
		}
	}
}
