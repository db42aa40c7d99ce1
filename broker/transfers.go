package broker

import (
	"siyuan-broker/broker/transfers"
	"siyuan-broker/contract/tools"
)

// newTransfers wires the one-time URLs. It needs the cluster and the recorder.
func (b *Broker) newTransfers(catalogue *tools.Catalogue) (err error) {
	b.transfers, err = transfers.New(transfers.Config{
		Store: b.db, Home: b.cluster.relay, Catalogue: catalogue, Recorder: b.recorder, PublicURL: b.cfg.PublicURLs[0],
		Origins: append(b.cfg.PublicURLs[1:len(b.cfg.PublicURLs):len(b.cfg.PublicURLs)], b.cfg.AllowedOrigins...), MaxBytes: int64(b.cfg.MaxUploadBytes), Now: b.now, Log: b.log,
	})
	return err
}
