module thalweg.example/hosts

go 1.20
