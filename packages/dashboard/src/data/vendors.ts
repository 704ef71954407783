import { useLoad } from './use-load.ts';

/** Loads the vendors and local servers that a model can be connected from. */
export function useVendors() {
  return useLoad(['vendors'], async () => (await import('@gatehouse/contract/vendor-list')).vendorOffers);
}
