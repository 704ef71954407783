export interface SystemPackage {
  readonly package: string;
  readonly command: string;
  readonly neededBy: string;
  /** Command of any other package that this one conflicts with. */
  readonly replaces?: string;
}
export declare const systemPackages: readonly SystemPackage[];
export declare function findCommand(command: string): string | undefined;
export declare function wouldRemove(entry: SystemPackage, find?: (command: string) => string | undefined): boolean;
export declare function ensureSystemPackages(say: (text: string) => void): readonly SystemPackage[];
