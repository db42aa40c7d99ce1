package people

// Provider is the installation's identity provider.
type Provider struct{}
