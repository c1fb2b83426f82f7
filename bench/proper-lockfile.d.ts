/** What the benchmarks use of proper-lockfile, which has no types of its own. */
declare module "proper-lockfile" {
  interface Retries {
    forever?: boolean;
    factor?: number;
    minTimeout?: number;
    maxTimeout?: number;
    randomize?: boolean;
  }
  const lockfile: { lock(file: string, options?: { retries?: Retries }): Promise<() => Promise<void>> };
  export default lockfile;
}
