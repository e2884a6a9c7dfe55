package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StoreSpec is the desired state of a store.
// +kubebuilder:validation:XValidation:rule="has(oldSelf.owner) || !has(self.owner)",fieldPath=".owner",message="cannot be set after creation"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.tier) || has(self.tier)",fieldPath=".tier",message="cannot be removed"
type StoreSpec struct {
	// Engine never changes: x-kubernetes-immutable, added by extensions.yaml.
	Engine string `json:"engine"`

	// Zones may be added, and not removed: x-kubernetes-addition-only, added by extensions.yaml.
	// +listType=set
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Owner can be given at creation only.
	// +optional
	Owner string `json:"owner,omitempty"`

	// Tier can be given later, and stays as it is from then on.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed"
	// +optional
	Tier string `json:"tier,omitempty"`
}

// Store keeps things.
// +kubebuilder:object:root=true
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StoreSpec `json:"spec,omitempty"`
}
