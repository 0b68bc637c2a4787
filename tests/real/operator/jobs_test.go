package operator

import (
	"slices"
	"strings"
	"testing"

	"github.com/grafana/k6-operator/pkg/resources/jobs"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func runners(t *testing.T) []*batchv1.Job {
	t.Helper()
	var out []*batchv1.Job
	run := testRun(t)
	for index := 1; index <= int(run.Spec.Parallelism); index++ {
		job, err := jobs.NewRunnerJob(run, index, "")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, job)
	}
	return out
}

func TestTheOperatorGivesEachInstanceItsShare(t *testing.T) {
	sequence, segments := "", []string{}
	for _, job := range runners(t) {
		command := job.Spec.Template.Spec.Containers[0].Command
		for _, word := range command {
			if segment, ok := strings.CutPrefix(word, "--execution-segment="); ok {
				segments = append(segments, segment)
			}
			if all, ok := strings.CutPrefix(word, "--execution-segment-sequence="); ok {
				sequence = all
			}
		}
		for _, word := range []string{"k6", "run", "--paused", "/test/replay.js", "--summary-trend-stats=med,p(99),p(99.9),max"} {
			if !slices.Contains(command, word) {
				t.Errorf("%q lacks %s", command, word)
			}
		}
		if *job.Spec.BackoffLimit != 0 {
			t.Errorf("%s is tried again: its share would be sent twice", job.Name)
		}
	}
	if want := "0,1/4,1/2,3/4,1"; sequence != want && sequence != "0,1/4,2/4,3/4,1" {
		t.Errorf("the sequence is %s, want %s", sequence, want)
	}
	for i, segment := range segments {
		from, to, _ := strings.Cut(segment, ":")
		bounds := strings.Split(sequence, ",")
		if from != bounds[i] || to != bounds[i+1] {
			t.Errorf("instance %d has %s of %s", i, segment, sequence)
		}
	}
}

// pods are all that run, by name: instances, initializer, merge and files.
func pods(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	initializer, err := jobs.NewInitializerJob(testRun(t), "")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]corev1.PodSpec{
		"initializer": initializer.Spec.Template.Spec,
		"merge":       objects[*batchv1.Job](t, read(t, "merge.yaml"))[0].Spec.Template.Spec,
		"files":       objects[*corev1.Pod](t, read(t, "files.yaml"))[0].Spec,
	}
	for _, job := range runners(t) {
		out[job.Name] = job.Spec.Template.Spec
	}
	return out
}

func TestEveryPodMountsVolumesThatItHas(t *testing.T) {
	for name, pod := range pods(t) {
		has := map[string]bool{}
		for _, volume := range pod.Volumes {
			has[volume.Name] = true
		}
		paths := map[string]bool{}
		for _, mount := range pod.Containers[0].VolumeMounts {
			if !has[mount.Name] {
				t.Errorf("%s mounts %s, and has %v", name, mount.Name, has)
			}
			if paths[mount.MountPath] {
				t.Errorf("%s mounts two volumes at %s", name, mount.MountPath)
			}
			paths[mount.MountPath] = true
		}
		if name == "initializer" && (!paths["/logs"] || !paths["/tmp"]) {
			t.Errorf("the initializer reads the script, which opens the log, and packs it in /tmp; it has %v", paths)
		}
	}
}

// TestEveryPodKeepsToTheProfileRestricted: kubernetes.io/docs/concepts/security/pod-security-standards.
func TestEveryPodKeepsToTheProfileRestricted(t *testing.T) {
	for name, pod := range pods(t) {
		of, in := pod.SecurityContext, pod.Containers[0].SecurityContext
		if of == nil || in == nil {
			t.Fatalf("%s has no security context", name)
		}
		for says, ok := range map[string]bool{
			"runs as root":            of.RunAsNonRoot != nil && *of.RunAsNonRoot && of.RunAsUser != nil && *of.RunAsUser > 0,
			"has no seccomp profile":  of.SeccompProfile != nil && of.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"may gain privileges":     in.AllowPrivilegeEscalation != nil && !*in.AllowPrivilegeEscalation,
			"keeps capabilities":      in.Capabilities != nil && slices.Equal(in.Capabilities.Drop, []corev1.Capability{"ALL"}),
			"may write to its system": in.ReadOnlyRootFilesystem != nil && *in.ReadOnlyRootFilesystem,
			"has an unsafe sysctl": !slices.ContainsFunc(of.Sysctls, func(s corev1.Sysctl) bool {
				return s.Name != "net.ipv4.ip_local_port_range"
			}),
			"has the token of its account": pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken,
			"has a CPU limit":              pod.Containers[0].Resources.Limits.Cpu().IsZero(),
			"has no memory limit":          !pod.Containers[0].Resources.Limits.Memory().IsZero(),
		} {
			if !ok {
				t.Errorf("%s %s", name, says)
			}
		}
	}
}

func TestEachInstanceHasANodeOfItsOwn(t *testing.T) {
	for _, job := range runners(t) {
		apart := job.Spec.Template.Spec.Affinity
		if apart == nil || apart.PodAntiAffinity == nil {
			t.Errorf("%s may share a node", job.Name)
		}
	}
}
