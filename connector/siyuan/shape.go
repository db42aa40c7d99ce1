package siyuan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Answer types mark what they cannot do without:
//
//	shape:"nonempty"  a string that must not be ""
//	shape:"nonnull"   a slice, map or raw message that must not be null or absent
//
// The kernel leaves both out when a handler fails half-way, so a missing id or
// list is a broken answer and not an empty one.
const shapeTag = "shape"

func checkShape(v any) error { return walkShape(reflect.ValueOf(v), "data") }

func walkShape(v reflect.Value, at string) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return walkShape(v.Elem(), at)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := walkShape(v.Index(i), at+"[]"); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := walkShape(it.Value(), at+"{}"); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkField(v.Type().Field(i), v.Field(i), at); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(f reflect.StructField, v reflect.Value, at string) error {
	if !f.IsExported() {
		return nil
	}
	at += "." + f.Name
	switch f.Tag.Get(shapeTag) {
	case "nonempty":
		if v.Len() == 0 {
			return fmt.Errorf("%s is empty", at)
		}
	case "nonnull":
		if v.IsNil() || f.Type == rawMessage && string(v.Bytes()) == "null" {
			return fmt.Errorf("%s is null", at)
		}
	}
	return walkShape(v, at)
}

// checkIDs finds an ID in a request that is not one.
func checkIDs(v any) error { return walkIDs(reflect.ValueOf(v)) }

var (
	idType     = reflect.TypeFor[ID]()
	errBadID   = errors.New("malformed id: want 14 digits, a dash and 7 of [a-z0-9]")
	errEmptyID = errors.New("empty id")
)

func walkIDs(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		switch {
		case v.Type() != idType || ID(v.String()).Valid():
			return nil
		case v.Len() == 0:
			return errEmptyID
		}
		return errBadID
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return walkIDs(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := walkIDs(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := errors.Join(walkIDs(it.Key()), walkIDs(it.Value())); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return walkFieldIDs(v)
	}
	return nil
}

// walkFieldIDs lets an empty ID pass in a field that is then not sent, or that
// is tagged shape:"optional".
func walkFieldIDs(v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || v.Field(i).IsZero() && (omitted(f) || f.Tag.Get(shapeTag) == "optional") {
			continue
		}
		if err := walkIDs(v.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

func omitted(f reflect.StructField) bool {
	return strings.Contains(f.Tag.Get("json"), ",omitempty")
}
