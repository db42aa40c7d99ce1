// Package page is how the broker's pages look and what protects them: the
// layout and the components, both languages, and the guard every page stands
// behind (known hosts, security headers, forms that only our own pages can
// send). A package that has pages brings its templates and messages as a Set
// and renders them within the layout. It must not know people, tenants or any
// particular page.
package page
