// Package feedback takes what agents say about this service and shows it to the
// people of their tenant. It is kept with the tenant's data and goes nowhere else.
// It must not know how calls reach a home, nor protocols.
package feedback
