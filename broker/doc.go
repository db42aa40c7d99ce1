// Package broker is the cloud half: it knows who calls, what they may do, where
// their home is and what happened. It never sees the SiYuan token and keeps no
// note contents. Everything is wired top to bottom in New; routes.go shows every
// route. It must not import the connector.
package broker
