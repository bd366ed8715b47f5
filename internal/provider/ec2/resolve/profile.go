package resolve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

const (
	// profileFor is how long a profile is assumed to exist. If somebody deletes it, launches fail as well.
	profileFor = 30 * time.Minute
	// brokenFor is how long to wait before checking a missing profile or role again.
	brokenFor = time.Minute
	// propagates is how long EC2 may not know a new profile yet (E-40).
	propagates = time.Minute
	// propagatingAfter is after what time to check again: a dry run may have accepted it meanwhile.
	propagatingAfter = 5 * time.Second
)

// Codes of IAM.
const (
	codeNoSuchEntity  = "NoSuchEntity"
	codeAlreadyExists = "EntityAlreadyExists"
	codeLimit         = "LimitExceeded" // of roles in a profile, which is one
)

// profile is what is known of an instance profile.
type profile struct {
	exists  bool // with the right role
	usable  time.Time
	reason  string // why it cannot be created; "" when it can
	message string
}

func (p profile) holds() time.Duration {
	if p.exists {
		return profileFor
	}
	return brokenFor
}

// ProfileName returns the name of the instance profile for a class's role. It depends only on the arguments, so that a
// crash leaks no profile and creates none twice (E-40).
func ProfileName(cluster, region, uid, role string) string {
	sum := sha256.New()
	for _, part := range []string{cluster, region, uid, role} {
		fmt.Fprintf(sum, "%d %s\n", len(part), part)
	}
	return "joiner-" + region + "-" + hex.EncodeToString(sum.Sum(nil))[:40]
}

// ProfilePath returns the path of a class's profiles.
func ProfilePath(cluster, region, uid string) string {
	return "/karpenter/" + region + "/" + cluster + "/" + uid + "/"
}

// profileOf returns the instance profile of a class, by its role or as the user says, and its key in the memory. If
// the status has one that another program created for the class and its role, that stays. Karpenter's names are
// random, and so launches need not wait until EC2 knows a new profile (E-40, P-34).
func (r *Resolver) profileOf(class *awsv1.EC2NodeClass) (name, key string) {
	role := value(class.Spec.Role)
	if role == "" {
		name = value(class.Spec.InstanceProfile)
		return name, name
	}
	if name, key = r.inherited(class); key != "" {
		if a := r.knownProfiles.get(key); a.value.exists || !a.known && a.failure != nil {
			return name, key
		}
	}
	name = ProfileName(r.config.Cluster, r.config.Region, string(class.UID), role)
	return name, name
}

// profileAsked reports whether it is known that the profile of a class exists, or that it does not.
func (r *Resolver) profileAsked(class *awsv1.EC2NodeClass) bool {
	_, key := r.profileOf(class)
	return r.knownProfiles.get(key).known
}

// inherited returns a profile of the status whose name is not ours, and the memory's key for whether it was created
// for the class and its role. Both are "" if there is none.
func (r *Resolver) inherited(class *awsv1.EC2NodeClass) (name, key string) {
	role, name := value(class.Spec.Role), class.Status.InstanceProfile
	if role == "" || name == "" || name == ProfileName(r.config.Cluster, r.config.Region, string(class.UID), role) {
		return "", ""
	}
	return name, fmt.Sprintf("%s of %s for %s", name, class.UID, role)
}

// ProfileAccepted notes that a dry run of EC2 has accepted an instance profile: launches need not wait any longer
// (E-40).
func (r *Resolver) ProfileAccepted(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted[name] = true
}

// askProfiles looks up profiles, and creates those of roles.
func (r *Resolver) askProfiles(ctx context.Context, classes []*awsv1.EC2NodeClass) {
	if r.config.IAM == nil {
		return
	}
	holds := func(_ string, p profile) time.Duration { return p.holds() }
	ask := func(keyOf func(*awsv1.EC2NodeClass) (name, key string),
		one func(class *awsv1.EC2NodeClass, name, key string)) {
		of := map[string]*awsv1.EC2NodeClass{}
		for _, class := range classes {
			if _, key := keyOf(class); key != "" && class.DeletionTimestamp == nil {
				of[key] = class
			}
		}
		// each is a call of its own
		due, _ := r.knownProfiles.dueAndSoon(r.now(), slices.Collect(maps.Keys(of)), holds)
		for _, key := range due {
			name, _ := keyOf(of[key])
			one(of[key], name, key)
		}
	}
	ask(r.inherited, func(class *awsv1.EC2NodeClass, name, key string) { r.askInherited(ctx, class, name, key) })
	ask(r.profileOf, func(class *awsv1.EC2NodeClass, name, key string) {
		if name == key { // inherited ones were asked for above
			r.askProfile(ctx, class, name)
		}
	})
}

// askInherited looks up whether a profile of the status was created for the class and its role. It must have the path
// of the class's profiles, or their tags: Karpenter's older profiles have no path.
func (r *Resolver) askInherited(ctx context.Context, class *awsv1.EC2NodeClass, name, key string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := r.now()
	found, err := r.getProfile(ctx, name)
	if err != nil && refusal.Of(err).Code != codeNoSuchEntity {
		r.knownProfiles.failed(key, r.now(), failureOf("iam:GetInstanceProfile", err))
		return
	}
	fits := err == nil && slices.Equal(rolesOf(found), []string{value(class.Spec.Role)}) &&
		(value(found.Path) == ProfilePath(r.config.Cluster, r.config.Region, string(class.UID)) ||
			r.taggedFor(class, found))
	r.knownProfiles.answered(key, asked, profile{exists: fits, usable: value(found.CreateDate)})
}

// taggedFor reports whether the tags of a profile say that it was created for a class of this cluster and region.
func (r *Resolver) taggedFor(class *awsv1.EC2NodeClass, found iamtypes.InstanceProfile) bool {
	for _, want := range r.ownTags(class) {
		if !slices.ContainsFunc(found.Tags, func(t iamtypes.Tag) bool {
			return value(t.Key) == want[0] && value(t.Value) == want[1]
		}) {
			return false
		}
	}
	return true
}

// askProfile looks up a profile, and creates it if it is for a role.
func (r *Resolver) askProfile(ctx context.Context, class *awsv1.EC2NodeClass, name string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := r.now()
	found, err := r.getProfile(ctx, name)
	role, roles := value(class.Spec.Role), rolesOf(found)
	switch {
	case err != nil && refusal.Of(err).Code != codeNoSuchEntity:
		r.knownProfiles.failed(name, r.now(), failureOf("iam:GetInstanceProfile", err))
	case role == "":
		r.knownProfiles.answered(name, asked, profile{exists: err == nil})
	case err == nil && slices.Equal(roles, []string{role}):
		r.knownProfiles.answered(name, asked, profile{exists: true, usable: value(found.CreateDate)})
	default:
		r.knownProfiles.answered(name, asked, profile{})
		r.makeProfile(ctx, class, name, err != nil, roles)
	}
}

func (r *Resolver) getProfile(ctx context.Context, name string) (iamtypes.InstanceProfile, error) {
	out, err := r.config.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err != nil || out.InstanceProfile == nil {
		return iamtypes.InstanceProfile{}, cmp.Or(err, errNoContent)
	}
	return *out.InstanceProfile, nil
}

func rolesOf(p iamtypes.InstanceProfile) (names []string) {
	for _, role := range p.Roles {
		names = append(names, value(role.RoleName))
	}
	return names
}

// makeProfile creates a profile, or sets its role. An interrupted process may have done some of the steps already, and
// IAM may not show that yet. So makeProfile tries each step. roles are the ones to remove from the profile.
func (r *Resolver) makeProfile(ctx context.Context, class *awsv1.EC2NodeClass, name string, missing bool,
	roles []string) {
	role, hidden := *class.Spec.Role, false
	if missing {
		path := ProfilePath(r.config.Cluster, r.config.Region, string(class.UID))
		in := &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path, Tags: r.profileTags(class)}
		_, err := r.config.IAM.CreateInstanceProfile(ctx, in)
		if hidden = refusal.Of(err).Code == codeAlreadyExists; err != nil && !hidden {
			r.profileFailed(name, role, "iam:CreateInstanceProfile", err)
			return
		}
	}
	for _, other := range roles {
		in := &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: &other}
		if _, err := r.config.IAM.RemoveRoleFromInstanceProfile(ctx, in); err != nil {
			r.profileFailed(name, role, "iam:RemoveRoleFromInstanceProfile", err)
			return
		}
	}
	in := &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role}
	_, err := r.config.IAM.AddRoleToInstanceProfile(ctx, in)
	if hasOne := hidden && refusal.Of(err).Code == codeLimit; err != nil && !hasOne {
		r.profileFailed(name, role, "iam:AddRoleToInstanceProfile", err)
		return
	}
	now := r.now()
	r.knownProfiles.answered(name, now, profile{exists: true, usable: now})
}

// profileFailed stores why a profile could not be created: a definite answer, or trouble of AWS.
func (r *Resolver) profileFailed(name, role, action string, err error) {
	why, now := failureOf(action, err), r.now()
	switch {
	case why.code == codeNoSuchEntity && !strings.Contains(strings.ToLower(why.text), "instance profile"):
		r.knownProfiles.answered(name, now, profile{reason: RoleNotFound, message: fmt.Sprintf(
			"spec.role is %q: the account has no such role; give the name of a role (not its ARN or path)", role)})
	case why.class == refusal.Rights:
		r.knownProfiles.answered(name, now, profile{reason: Unauthorized, message: fmt.Sprintf(
			"the instance profile for spec.role %q cannot be made: %s; allow the controller's role this action, "+
				"or give spec.instanceProfile in place of spec.role", role, why)})
	default:
		r.knownProfiles.failed(name, now, why)
	}
}

// profileTags returns the tags of a profile: those of the class, overwritten by those by which the controller's policy
// recognizes its profiles.
func (r *Resolver) profileTags(class *awsv1.EC2NodeClass) (list []iamtypes.Tag) {
	tags := maps.Clone(class.Spec.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	for _, own := range r.ownTags(class) {
		tags[own[0]] = own[1]
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, iamtypes.Tag{Key: new(key), Value: new(tags[key])})
	}
	return list
}

// ownTags returns the tags that say what a profile is for, as keys and values. Karpenter has the same.
func (r *Resolver) ownTags(class *awsv1.EC2NodeClass) [][2]string {
	return [][2]string{
		{"kubernetes.io/cluster/" + r.config.Cluster, "owned"}, {"eks:eks-cluster-name", r.config.Cluster},
		{"topology.kubernetes.io/region", r.config.Region}, {awsv1.NodeClassLabelKey, class.Name},
	}
}

// judgeProfile decides the instance profile of a class.
func (r *Resolver) judgeProfile(class *awsv1.EC2NodeClass, into *Result, now time.Time) {
	name, key := r.profileOf(class)
	a := r.knownProfiles.get(key)
	b := newBasis()
	b.add(a.state, a.value.holds())
	switch {
	case value(class.Spec.Role) != "" && r.config.IAM == nil:
		into.Status.InstanceProfile = ""
		into.Conditions = append(into.Conditions,
			unmet(InstanceProfileReady, IAMNotReachable, "spec.role needs IAM, which "+
				"cannot be reached from an isolated VPC: give spec.instanceProfile, the name of a profile that exists"))
	case value(class.Spec.Role) == "":
		text := ""
		if a.failure != nil && !a.known {
			text = fmt.Sprintf("whether %s exists is not known: %s", name, a.failure)
		}
		into.Status.InstanceProfile = name
		into.Conditions = append(into.Conditions, met(InstanceProfileReady, text))
	case class.DeletionTimestamp != nil && !a.known: // none is created for a class being deleted
		c, _ := said(class, InstanceProfileReady)
		if c.Type == "" {
			c = unknown(InstanceProfileReady, NotResolved, "the class is being deleted")
		}
		into.Conditions = append(into.Conditions, c)
	case !a.known:
		_, current := said(class, InstanceProfileReady)
		current = current || class.Status.InstanceProfile == name
		into.Conditions = append(into.Conditions, kept(class, InstanceProfileReady, current, b.failure, r.started,
			now))
		into.stale(b)
	case a.value.reason != "":
		into.Status.InstanceProfile = ""
		into.add(unmet(InstanceProfileReady, a.value.reason, a.value.message), b, now)
	case !a.value.exists:
		into.Status.InstanceProfile = ""
		into.add(unknown(InstanceProfileReady, NotResolved,
			fmt.Sprintf("the instance profile %s cannot be made yet: %s; it is tried again", name, a.failure)), b, now)
	default:
		into.Status.InstanceProfile = name
		into.add(r.propagating(name, a.value, into, now), b, now)
	}
}

// propagating returns the condition of an existing profile: for a minute EC2 may not know it (E-40).
func (r *Resolver) propagating(name string, p profile, into *Result, now time.Time) karpenterv1.Condition {
	r.mu.Lock()
	accepted := r.accepted[name]
	r.mu.Unlock()
	if left := p.usable.Add(propagates).Sub(now); left > 0 && !accepted {
		into.After = min(into.After, propagatingAfter, left)
		return unknown(InstanceProfileReady, Propagating, fmt.Sprintf(
			"the instance profile %s was made at %s; EC2 may need a minute to know it", name,
			p.usable.UTC().Format(time.RFC3339)))
	}
	return met(InstanceProfileReady, "")
}
