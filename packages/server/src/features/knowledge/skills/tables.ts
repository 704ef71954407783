import type { ProvenanceRow, StatRow } from './store.ts';

/** Rows of `skill_provenance`. */
interface SkillProvenanceTable {
  readonly owner: string;
  readonly name: string;
  readonly digest: string;
  readonly source: ProvenanceRow['source'];
  readonly tier: ProvenanceRow['tier'];
  readonly verdict: ProvenanceRow['verdict'];
  readonly forced: ProvenanceRow['forced'];
  readonly url: string | null;
  readonly principalId: string;
  readonly atMs: number;
}

/** Rows of `skill_stat`. */
interface SkillStatTable {
  readonly agentId: string;
  readonly owner: string;
  readonly name: string;
  readonly uses: number;
  readonly failures: number;
  readonly streak: number;
  readonly standing: StatRow['standing'];
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly skillProvenance: SkillProvenanceTable;
    readonly skillStat: SkillStatTable;
  }
}
