package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// sink starts a server in this process that reads what is put and forgets it.
func (r *rig) sink(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: http.HandlerFunc(forget), ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) }) // says only that it was closed
	r.stops = append(r.stops, func() error {
		err := s.Close()
		serving.Wait()
		return err
	})
	return "http://" + l.Addr().String(), nil
}

func forget(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPut:
		buffer := make([]byte, 1<<20)
		for {
			_, err := r.Body.Read(buffer)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
		}
		w.WriteHeader(http.StatusCreated)
	case "MKCOL":
		w.WriteHeader(http.StatusCreated)
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "forgotten", http.StatusNotFound)
	}
}
