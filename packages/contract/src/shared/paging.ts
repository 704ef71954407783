import * as z from 'zod';

/** Request side of a paged list; the result carries the same plus `total` and `hasMore`. */
export function pageParams(options: { defaultLimit: number; maxLimit: number }) {
  return {
    offset: z.int().min(0).default(0),
    limit: z.int().min(1).max(options.maxLimit).default(options.defaultLimit),
  };
}

export const pageResult = {
  total: z.int().min(0),
  offset: z.int().min(0),
  limit: z.int().min(1),
  hasMore: z.boolean(),
};
