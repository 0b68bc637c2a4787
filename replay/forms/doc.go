// Package forms reads what requests carry, forms and JSON: secrets in them are replaced before anything is done with them,
// and tokens against forged requests are exchanged for those of the page that a client last had. It is pure.
package forms
