package coordinator

import (
	"context"
	"fmt"

	"weir/transfer/sites"
)

// predefine adds the sites and writes the tokens of the configuration.
func (c *Coordinator) predefine(ctx context.Context) error {
	for i := range c.conf.Sites {
		in := &c.conf.Sites[i]
		if err := sites.Check(in); err != nil {
			return err
		}
		if err := c.registry.Put(ctx, in); err != nil {
			return fmt.Errorf("site %s: %w", in.Name, err)
		}
	}
	for _, t := range c.conf.Tokens {
		if err := c.access.KeepToken(ctx, t); err != nil {
			return fmt.Errorf("token of %s: %w", t.Token.Subject, err)
		}
	}
	return nil
}
