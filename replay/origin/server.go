package origin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

// maxHeaderBytes leaves room for targets of 1 MiB and the headers beside them.
const maxHeaderBytes = 2 << 20

// Serve answers on l with h until ctx is done. With a certificate it speaks TLS, and HTTP/2 to clients that ask for it.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certificate *tls.Certificate) error {
	server := &http.Server{
		Handler:        h,
		MaxHeaderBytes: maxHeaderBytes,
		// OPTIONS * has a logged answer like all others.
		DisableGeneralOptionsHandler: true,
		// Clients that go away are a part of every replay, and not worth reporting.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()

	var err error
	if certificate != nil {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// SelfSigned makes a certificate for this machine under its local names and addresses, valid for 30 days.
func SelfSigned(hosts ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "plimsoll origin"},
		NotBefore:    now.Add(-24 * time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
