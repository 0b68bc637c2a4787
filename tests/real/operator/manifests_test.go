// Package operator holds the manifests of examples/k6-operator against the operator, whose module it pins.
package operator

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	k6v1alpha1 "github.com/grafana/k6-operator/api/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const example = "../../../examples/k6-operator"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objects are what a manifest holds.
func objects[T runtime.Object](t *testing.T, text string) []T {
	t.Helper()
	var out []T
	for _, part := range strings.Split(text, "\n---\n") {
		object, err := decoded([]byte(part))
		if err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		one, ok := object.(T)
		if !ok {
			t.Fatalf("a %T stands among the %T", object, *new(T))
		}
		out = append(out, one)
	}
	return out
}

func testRun(t *testing.T) *k6v1alpha1.TestRun {
	t.Helper()
	return objects[*k6v1alpha1.TestRun](t, read(t, "testrun.yaml"))[0]
}

func TestTheTestRunIsWhatTheOperatorTakes(t *testing.T) {
	if problems := operatorSchema(t).problems(t, []byte(read(t, "testrun.yaml"))); problems != nil {
		t.Errorf("%q", problems)
	}
}

func TestWhatTheOperatorDoesNotTakeIsFound(t *testing.T) {
	schema, whole := operatorSchema(t), read(t, "testrun.yaml")
	for _, c := range []struct{ says, old, with, want string }{
		{"a key that there is not", "  separate: true", "  seperate: true", "seperate"},
		{"a key of a volume that there is not", "          claimName: plimsoll-logs", "          claim: plimsoll-logs", "claim"},
		{"a text for a number", "  parallelism: 4", "  parallelism: four", "parallelism"},
		{"true or false where the operator wants a text", `automountServiceAccountToken: "false"`, "automountServiceAccountToken: false", "automountServiceAccountToken"},
		{"a clean-up that there is not", "  cleanup: post", "  cleanup: after", "cleanup"},
		{"an amount of memory that is none", "        memory: 2Gi\n      limits", "        memory: 2 GiB\n      limits", "memory"},
		{"no parallelism", "  parallelism: 4", "", "parallelism"},
		{"a list in place of an object", "    securityContext:\n      runAsNonRoot: true", "    securityContext:\n      - runAsNonRoot: true", ""},
		{"a key twice", "  separate: true", "  separate: true\n  separate: true", "separate"},
		{"metadata that there is not", "  name: plimsoll-replay\nspec", "  title: plimsoll-replay\nspec", "title"},
		{"another version", "k6.io/v1alpha1", "k6.io/v1", "v1"},
	} {
		text := strings.Replace(whole, c.old, c.with, 1)
		if text == whole {
			t.Fatalf("%s: %q is not in testrun.yaml", c.says, c.old)
		}
		problems := schema.problems(t, []byte(text))
		if len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), c.want) {
			t.Errorf("%s: %q, want %q", c.says, problems, c.want)
		}
	}
}

func TestTheOtherManifestsAreWhatKubernetesTakes(t *testing.T) {
	objects[*corev1.PersistentVolumeClaim](t, read(t, "volumes.yaml"))
	objects[*batchv1.Job](t, read(t, "merge.yaml"))
	objects[*corev1.Pod](t, read(t, "files.yaml"))
	for _, c := range []struct{ says, file, old, with string }{
		{"a key of a claim that there is not", "volumes.yaml", "accessModes", "accessMode"},
		{"a text for a number", "merge.yaml", "backoffLimit: 0", "backoffLimit: none"},
		{"a key of a container that there is not", "files.yaml", "volumeMounts:", "mounts:"},
	} {
		text := strings.Replace(read(t, c.file), c.old, c.with, 1)
		if _, err := decoded([]byte(strings.Split(text, "\n---\n")[0])); err == nil {
			t.Errorf("%s is not found in %s", c.says, c.file)
		}
	}
}

// built is what `kubectl apply -k` sends.
func built(t *testing.T) (claims []*corev1.PersistentVolumeClaim, scripts []*corev1.ConfigMap) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), example)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, err := decoded(text)
		if err != nil {
			t.Fatal(err)
		}
		switch one := object.(type) {
		case *corev1.PersistentVolumeClaim:
			claims = append(claims, one)
		case *corev1.ConfigMap:
			scripts = append(scripts, one)
		default:
			t.Errorf("a %T is built", object)
		}
	}
	return claims, scripts
}

func TestWhatTheTestRunNamesIsThere(t *testing.T) {
	claims, scripts := built(t)
	if len(scripts) != 1 || len(claims) != 2 {
		t.Fatalf("%d scripts and %d claims", len(scripts), len(claims))
	}
	script := testRun(t).Spec.Script.ConfigMap
	if script.Name != scripts[0].Name || scripts[0].Data[script.File] != read(t, "replay.js") {
		t.Errorf("the script is %s of %s, but the ConfigMap is %s", script.File, script.Name, scripts[0].Name)
	}
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
		if !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
			t.Errorf("%s cannot be mounted by several nodes", claim.Name)
		}
	}
	named := testRun(t).Spec.Runner.Volumes
	named = append(named, objects[*batchv1.Job](t, read(t, "merge.yaml"))[0].Spec.Template.Spec.Volumes...)
	named = append(named, objects[*corev1.Pod](t, read(t, "files.yaml"))[0].Spec.Volumes...)
	for _, volume := range named {
		if claim := volume.PersistentVolumeClaim; claim != nil && !slices.Contains(names, claim.ClaimName) {
			t.Errorf("volume %s is of %s, which is none of %v", volume.Name, claim.ClaimName, names)
		}
	}
}

func TestTheScriptAgreesWithTheManifests(t *testing.T) {
	script, spec := read(t, "replay.js"), testRun(t).Spec
	instances := regexp.MustCompile(`instances: (\d+)`).FindStringSubmatch(script)
	if instances == nil || instances[1] != strconv.Itoa(int(spec.Parallelism)) {
		t.Errorf("replay.js has instances %v, testrun.yaml parallelism %d", instances, spec.Parallelism)
	}
	for key, want := range map[string]corev1.VolumeMount{"logs": {Name: "logs", ReadOnly: true}, "out": {Name: "results"}} {
		path := regexp.MustCompile(key + `: '([^']*)'`).FindStringSubmatch(script)
		if path == nil {
			t.Fatalf("replay.js has no %s", key)
		}
		under := slices.IndexFunc(spec.Runner.VolumeMounts, func(m corev1.VolumeMount) bool {
			return strings.HasPrefix(path[1], m.MountPath+"/")
		})
		if under < 0 || spec.Runner.VolumeMounts[under].Name != want.Name || spec.Runner.VolumeMounts[under].ReadOnly != want.ReadOnly {
			t.Errorf("%s: %s is under no mount of volume %s (read-only: %v)", key, path[1], want.Name, want.ReadOnly)
		}
		if key == "out" && !strings.Contains(read(t, "merge.yaml"), "plimsoll merge "+path[1]+" ") {
			t.Errorf("merge.yaml merges something else than %s", path[1])
		}
	}
}
