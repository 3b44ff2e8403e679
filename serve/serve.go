package serve
