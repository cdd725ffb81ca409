import { defineConfig } from "vite";

// The shared worker is a script of its own.
export default defineConfig({
  publicDir: false,
  build: {
    target: "es2022",
    lib: { entry: "src/live/worker.ts", formats: ["es"], fileName: () => "worker.js" },
  },
});
