import type { ParamsInput } from '@gatehouse/contract';

/** What an import brings, in the terms of Gatehouse, whatever the product. */
export interface Bundle {
  readonly product: Product;
  readonly agents: readonly ImportedAgent[];
  readonly providers: readonly ImportedProvider[];
  readonly secrets: readonly ImportedSecret[];
  /** What stays behind. */
  readonly left: readonly Left[];
}

export const products = ['openclaw', 'comis', 'open-webui'] as const;
export type Product = (typeof products)[number];

/** Origin of something: a file of the source and a place in it. */
interface Origin {
  readonly from: string;
}

export interface Left extends Origin {
  readonly what: string;
  readonly reason: string;
}

export interface ImportedAgent extends Origin {
  readonly id: string;
  /** Absent: the agent exists already in every installation. */
  readonly config: ParamsInput<'agents.create'>['config'] | undefined;
  /** What differs from the source. */
  readonly changes: readonly string[];
  readonly files: readonly ImportedFile[];
  readonly skills: readonly ImportedSkill[];
  readonly memories: readonly ImportedMemory[];
  readonly jobs: readonly ImportedJob[];
}

export interface ImportedFile extends Origin {
  readonly path: string;
  readonly content: string;
}

export interface ImportedSkill extends Origin {
  readonly name: string;
  readonly files: readonly { readonly path: string; readonly content: string }[];
  readonly changes: readonly string[];
}

export interface ImportedMemory extends Origin {
  readonly content: string;
  readonly memoryType: 'semantic' | 'episodic';
}

export interface ImportedJob extends Origin {
  readonly name: string;
  readonly schedule: ParamsInput<'cron.add'>['schedule'];
  readonly payload: ParamsInput<'cron.add'>['payload'];
  readonly changes: readonly string[];
}

export interface ImportedProvider extends Origin {
  readonly settings: ParamsInput<'providers.set'>;
}

export interface ImportedSecret extends Origin {
  readonly name: string;
  readonly value: string;
}
