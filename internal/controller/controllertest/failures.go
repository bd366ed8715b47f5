package controllertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrRefused is the error of a call that [Failures] makes fail.
var ErrRefused = errors.New("the API server gave no answer")

// Failures sits between a controller and its API server, counts the calls, and makes one of them fail. Other
// dependencies count their calls with Call.
type Failures struct {
	at    int // the number of the call that fails, from 1
	calls int
	name  string // the call that failed
}

// Call counts a call and returns an error if it must fail.
func (f *Failures) Call(format string, args ...any) error {
	f.calls++
	if f.calls != f.at {
		return nil
	}
	f.name = fmt.Sprintf(format, args...)
	return ErrRefused
}

// Wrap returns the server as the controller sees it.
func (f *Failures) Wrap(server client.WithWatch) client.WithWatch {
	call := func(verb string, o any) error {
		return f.Call("%s %s", verb, strings.TrimPrefix(fmt.Sprintf("%T", o), "*"))
	}
	return interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			return unless(call("get", o), func() error { return c.Get(ctx, key, o, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			return unless(call("list", l), func() error { return c.List(ctx, l, options...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return unless(call("create", o), func() error { return c.Create(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return unless(call("delete", o), func() error { return c.Delete(ctx, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return unless(call("update", o), func() error { return c.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			return unless(call("patch", o), func() error { return c.Patch(ctx, o, p, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			return unless(call("patch "+sub, o),
				func() error { return c.SubResource(sub).Patch(ctx, o, p, options...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object,
			options ...client.SubResourceCreateOption) error {
			return unless(call("create "+sub, o),
				func() error { return c.SubResource(sub).Create(ctx, o, s, options...) })
		},
	})
}

func unless(err error, call func() error) error {
	if err != nil {
		return err
	}
	return call()
}

// EachFailureIsTold repeats a scene and makes another call fail each time, until no call is left. The step must return
// the failure, so that it is called again: a swallowed failure is never retried. courtesies names calls that may fail
// silently ("get v1.Pod"). It returns the names of the failed calls, in order.
func EachFailureIsTold(t *testing.T, scene func(t *testing.T, f *Failures) (step func() error),
	courtesies ...string) []string {
	t.Helper()
	var failed []string
	for n := 1; ; n++ {
		if n > 500 {
			t.Fatal("the scene does not end")
		}
		f := &Failures{at: -1}
		step := scene(t, f)
		f.at, f.calls = n, 0
		err := step()
		if f.name == "" {
			if err != nil {
				t.Errorf("the scene without a failure: %v", err)
			}
			break
		}
		failed = append(failed, f.name)
		if !errors.Is(err, ErrRefused) && !slices.Contains(courtesies, f.name) {
			t.Errorf("call %d, %s, failed, and the step returned %v", n, f.name, err)
		}
	}
	if len(failed) == 0 {
		t.Error("the scene makes no call")
	}
	return failed
}
