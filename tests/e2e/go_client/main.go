// A client in another language: asks a Fila server for its health, or whom it takes the client for, over mutual TLS, as
// any gRPC program would.
// go run . ADDR CA CERT KEY [whoami [TOKEN]]; empty CERT and KEY show no certificate. Prints the status of the call.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The first field of WhoAmIResponse, read without generated code.
func principal(answer *emptypb.Empty) string {
	unknown := answer.ProtoReflect().GetUnknown()
	number, _, length := protowire.ConsumeTag(unknown)
	if number != 1 {
		return ""
	}
	name, _ := protowire.ConsumeString(unknown[length:])
	return name
}

func main() {
	addr, ca, cert, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	pem, err := os.ReadFile(ca)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	connection, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if len(os.Args) > 5 && os.Args[5] == "whoami" {
		if len(os.Args) > 6 {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Args[6])
		}
		me := &emptypb.Empty{}
		err := connection.Invoke(ctx, "/fila.v1.FilaAuth/WhoAmI", &emptypb.Empty{}, me)
		fmt.Println(status.Code(err), principal(me))
		return
	}
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		fmt.Println(status.Code(err), status.Convert(err).Message())
		return
	}
	fmt.Println("OK", answer.Status)
}
