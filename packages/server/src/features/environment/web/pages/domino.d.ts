import type { Readability } from '@mozilla/readability';

// The package declares its types under the name of its ancestor; `paths` of tsconfig.base.json points here.
export type ParsedDocument = ConstructorParameters<typeof Readability>[0];
export function createDocument(html: string, force: boolean): ParsedDocument;
