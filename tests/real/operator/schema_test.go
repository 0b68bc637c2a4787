package operator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	k6v1alpha1 "github.com/grafana/k6-operator/api/v1alpha1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// schema is the operator's own description of a TestRun, read as a Kubernetes API server reads it.
type schema struct {
	fields    *structural.Structural
	validator validation.SchemaValidator
}

// operatorSchema takes it from the release that go.mod pins.
func operatorSchema(t *testing.T) schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/grafana/k6-operator").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config/crd/bases/k6.io_testruns.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != "v1alpha1" {
		t.Fatalf("the operator has other versions of TestRun than v1alpha1: %v", crd.Spec.Versions)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	fields, err := structural.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	return schema{fields, validator}
}

// problems are what is wrong with a TestRun: values that the schema refuses, and keys that it does not know.
func (s schema) problems(t *testing.T, text []byte) []string {
	t.Helper()
	var object map[string]any
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, err := range validation.ValidateCustomResource(nil, object, s.validator) {
		out = append(out, err.Error())
	}
	unknown := pruning.PruneWithOptions(object, s.fields, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		out = append(out, "unknown key "+path)
	}
	if _, err := decoded(text); err != nil { // also what stands under metadata
		out = append(out, err.Error())
	}
	return out
}

// decoded is an object of Kubernetes or the operator; unknown and repeated keys and wrong types are errors.
func decoded(text []byte) (runtime.Object, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(kubernetes.AddToScheme(scheme))
	utilruntime.Must(k6v1alpha1.AddToScheme(scheme))
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}
