import type { DescribedProvider } from '../llm/create-models.ts';
import { type Finding, ok, warn } from './doctor-machine.ts';

/** Vendors change their prices a few times a year. */
const oldAfterDays = 180;
const dayMs = 86_400_000;

/** Warns of built-in prices of providers in use that are so old that sums of money and caps may be wrong. */
export function checkPrices(providers: readonly Pick<DescribedProvider, 'id' | 'models'>[], detail: string, nowMs: number): Finding {
  const old = providers.flatMap(({ id, models }) => {
    const { asOf, url } = models.find(({ origin }) => origin.cost.asOf !== undefined)?.origin.cost ?? {};
    return asOf === undefined || nowMs - Date.parse(asOf) < oldAfterDays * dayMs ? [] : [{ id, asOf, url }];
  });
  if (old.length === 0) return ok(detail);
  return warn(
    `${detail}. The built-in prices of ${old.map(({ id, asOf }) => `${id} are of ${asOf}`).join(', those of ')}`,
    `Compare them with ${old.map(({ url }) => url).join(', ')}; set what changed with "gatehouse providers set-price", or take a newer version.`,
  );
}
