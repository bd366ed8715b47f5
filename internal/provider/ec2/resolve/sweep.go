package resolve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// sweptAfter is the minimum age of a profile for a sweep (E-56): the class that it was created for may not be listed
// yet.
const sweptAfter = time.Hour

// maxProfilePages bounds a listing of instance profiles. By default an account can have 1,000.
const maxProfilePages = 100

// RemoveProfiles deletes the instance profiles that were created for a class (E-04), by its UID.
func (r *Resolver) RemoveProfiles(ctx context.Context, uid string) error {
	return r.removeProfiles(ctx, ProfilePath(r.config.Cluster, r.config.Region, uid),
		func(iamtypes.InstanceProfile) bool { return true })
}

// SweepProfiles deletes the unused instance profiles below the cluster's path that are at least an hour old (E-56).
// inUse reports whether a profile, by its name and the UID of its class, is still needed.
func (r *Resolver) SweepProfiles(ctx context.Context, inUse func(uid, name string) bool) error {
	path := strings.TrimSuffix(ProfilePath(r.config.Cluster, r.config.Region, ""), "/")
	return r.removeProfiles(ctx, path, func(p iamtypes.InstanceProfile) bool {
		uid, _, whole := strings.Cut(strings.TrimPrefix(value(p.Path), path), "/")
		return whole && uid != "" && !inUse(uid, value(p.InstanceProfileName)) &&
			!value(p.CreateDate).IsZero() && r.now().Sub(*p.CreateDate) >= sweptAfter
	})
}

// removeProfiles deletes the profiles below a path that mayGo accepts. A failure does not stop the others.
func (r *Resolver) removeProfiles(ctx context.Context, path string, mayGo func(iamtypes.InstanceProfile) bool) error {
	if r.config.IAM == nil {
		return nil
	}
	in := &iam.ListInstanceProfilesInput{PathPrefix: &path}
	var failures []error
	for range maxProfilePages {
		out, err := r.config.IAM.ListInstanceProfiles(ctx, in)
		if err != nil {
			return errors.Join(append(failures, fmt.Errorf("listing the instance profiles below %s: %w", path,
				err))...)
		}
		for _, p := range out.InstanceProfiles {
			if mayGo(p) {
				failures = append(failures, r.removeProfile(ctx, p))
			}
		}
		if !out.IsTruncated || value(out.Marker) == "" {
			break
		}
		in.Marker = out.Marker
	}
	return errors.Join(failures...)
}

// removeProfile removes the roles of a profile and deletes it. What is gone already is not an error.
func (r *Resolver) removeProfile(ctx context.Context, p iamtypes.InstanceProfile) error {
	name := value(p.InstanceProfileName)
	for _, role := range p.Roles {
		in := &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: role.RoleName}
		if _, err := r.config.IAM.RemoveRoleFromInstanceProfile(ctx, in); err != nil &&
			refusal.Of(err).Code != codeNoSuchEntity {
			return fmt.Errorf("taking role %s out of instance profile %s: %w", value(role.RoleName), name, err)
		}
	}
	_, err := r.config.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	if err != nil && refusal.Of(err).Code != codeNoSuchEntity {
		return fmt.Errorf("deleting instance profile %s: %w", name, err)
	}
	r.mu.Lock()
	delete(r.accepted, name)
	r.mu.Unlock()
	r.knownProfiles.drop(name)
	return nil
}
