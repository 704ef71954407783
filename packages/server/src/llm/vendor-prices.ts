import type { ProviderType } from '@gatehouse/contract';

/** US dollars per million tokens: input, output, and where they differ from input, reads and writes of the cache. */
type Row = readonly [input: number, output: number, cacheRead?: number, cacheWrite?: number];

export interface VendorPrices {
  /** Day of the last comparison with the source. */
  readonly asOf: string;
  /** Page on which the vendor publishes them. */
  readonly source: string;
  readonly models: Readonly<Record<string, Row>>;
}

/**
 * Prices of models as their vendors published them. A model that is missing here has no price that is certain: a spending cap refuses it until
 * the configuration states one. Where a vendor charges more above a prompt length, `known-models.ts` ends the window at that length, so
 * that the price is right. A change of one price means that all prices of the vendor were compared, and sets `asOf`. The first date, 2025-12-15,
 * is that of the newest models in the table, not of a comparison.
 */
export const vendorPrices: Partial<Record<ProviderType, VendorPrices>> = {
  openai: {
    asOf: '2025-12-15',
    source: 'https://openai.com/api/pricing',
    models: {
      'gpt-5-mini': [0.25, 2, 0.025],
      'gpt-5': [1.25, 10, 0.125],
      'gpt-5.1': [1.25, 10, 0.125],
      'gpt-5.2': [1.75, 14, 0.175],
      'gpt-5-nano': [0.05, 0.4, 0.005],
      'gpt-4.1': [2, 8, 0.5],
      'gpt-4.1-mini': [0.4, 1.6, 0.1],
      'gpt-4.1-nano': [0.1, 0.4, 0.025],
      'gpt-4o': [2.5, 10, 1.25],
      'gpt-4o-mini': [0.15, 0.6, 0.075],
      o3: [2, 8, 0.5],
      'o4-mini': [1.1, 4.4, 0.275],
    },
  },
  anthropic: {
    asOf: '2025-12-15',
    source: 'https://claude.com/pricing#api',
    models: {
      'claude-sonnet-4-5': [3, 15, 0.3, 3.75],
      'claude-opus-4-5': [5, 25, 0.5, 6.25],
      'claude-haiku-4-5': [1, 5, 0.1, 1.25],
      'claude-opus-4-1': [15, 75, 1.5, 18.75],
    },
  },
  google: {
    asOf: '2025-12-15',
    source: 'https://ai.google.dev/gemini-api/docs/pricing',
    models: {
      'gemini-2.5-flash': [0.3, 2.5, 0.075],
      'gemini-2.5-pro': [1.25, 10, 0.31],
      'gemini-2.5-flash-lite': [0.1, 0.4, 0.025],
    },
  },
  groq: {
    asOf: '2025-12-15',
    source: 'https://groq.com/pricing',
    models: {
      'llama-3.3-70b-versatile': [0.59, 0.79],
      'llama-3.1-8b-instant': [0.05, 0.08],
    },
  },
  xai: {
    asOf: '2025-12-15',
    source: 'https://docs.x.ai/docs/models',
    models: {
      'grok-4': [3, 15, 0.75],
      'grok-3': [3, 15, 0.75],
      'grok-3-mini': [0.3, 0.5, 0.075],
    },
  },
  openrouter: {
    asOf: '2025-12-15',
    source: 'https://openrouter.ai/models',
    models: {
      'openai/gpt-5-mini': [0.25, 2, 0.025],
      'openai/gpt-5': [1.25, 10, 0.125],
      'anthropic/claude-sonnet-4.5': [3, 15, 0.3, 3.75],
      'google/gemini-2.5-flash': [0.3, 2.5, 0.075],
    },
  },
  deepseek: {
    asOf: '2025-12-15',
    source: 'https://api-docs.deepseek.com/quick_start/pricing',
    models: {
      'deepseek-chat': [0.28, 0.42, 0.028],
      'deepseek-reasoner': [0.28, 0.42, 0.028],
    },
  },
};
