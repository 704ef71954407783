export interface SystemPackage {
  readonly package: string;
  readonly command: string;
  readonly neededBy: string;
}
export declare const systemPackages: readonly SystemPackage[];
export declare function findCommand(command: string): string | undefined;
export declare function ensureSystemPackages(say: (text: string) => void): readonly SystemPackage[];
