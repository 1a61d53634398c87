//go:build tools

package trainingoperator

import _ "github.com/kubeflow/training-operator/cmd/training-operator.v1"
